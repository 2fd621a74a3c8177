# The package of server, console and CLI is made in a stage of its own: its tools stay out of the image.
FROM node:26-slim AS build
WORKDIR /app
# The commit, for `tacho version`: docker build --build-arg BUILD_COMMIT=$(git rev-parse HEAD) .
ARG BUILD_COMMIT
# The version, if it is a release.
ARG BUILD_RELEASE
COPY . .
RUN npm ci --omit=dev --workspace=@tacho/console --workspace=@tacho/cli --include-workspace-root \
  && mkdir /package \
  && node scripts/pack.mjs /package

# better-sqlite3 ships its binaries: nothing is compiled. The image has the Node that the package would bring.
FROM node:26-slim AS install
COPY --from=build /package /package
RUN npm install --prefix /app --omit=dev --no-audit --no-fund --ignore-scripts /package/*.tgz

FROM node:26-slim
WORKDIR /app
ENV NODE_ENV=production \
    TACHO_HOST=0.0.0.0 \
    TACHO_DATA_DIR=/data \
    NODE_COMPILE_CACHE=/app/.cache
# The code belongs to root: the service may write to /data only, and the root file system may be read-only.
COPY --from=install /app/node_modules ./node_modules
# A new volume takes its owner from the folder it covers; compiled modules are kept in .cache, if it can be written.
RUN mkdir /data .cache && chown node:node /data .cache
USER node
VOLUME /data
EXPOSE 4680
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.TACHO_PORT || 4680}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# The script sets the memory settings, then becomes Node: SIGTERM reaches the service, and it can drain.
ENTRYPOINT ["/app/node_modules/tacho/scripts/node", "/app/node_modules/tacho/packages/cli/dist/main.js"]
CMD ["serve"]
