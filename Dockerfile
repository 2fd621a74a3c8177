# Console and program are built in a stage of their own: its tools stay out of the image.
FROM node:26-slim AS build
WORKDIR /app
# The commit, for `tacho version`: docker build --build-arg BUILD_COMMIT=$(git rev-parse HEAD) .
ARG BUILD_COMMIT
COPY . .
RUN npm ci --workspace=@tacho/console --workspace=@tacho/cli --include-workspace-root --no-audit --no-fund \
  && node scripts/build-console.mjs \
  && node scripts/build-program.mjs \
  && test -f packages/console/dist/index.html -a -f packages/cli/dist/main.js

# The image brings its own Node 26, so npm leaves out the pinned one (all of it optional packages, as are the other
# optional ones here: none is needed to serve). better-sqlite3 ships its binaries: nothing is compiled.
FROM node:26-slim AS install
WORKDIR /app
COPY . .
RUN npm ci --omit=dev --omit=optional --workspace=@tacho/cli --no-audit --no-fund

FROM node:26-slim
WORKDIR /app
ENV NODE_ENV=production \
    TACHO_HOST=0.0.0.0 \
    TACHO_DATA_DIR=/data
# The code belongs to root: the service may write to /data only.
COPY --from=install /app/package.json /app/LICENSE ./
COPY --from=install /app/node_modules ./node_modules
COPY --from=install /app/packages ./packages
COPY --from=build /app/packages/console/dist ./packages/console/dist
COPY --from=build /app/packages/cli/dist ./packages/cli/dist
COPY --from=install /app/scripts/node ./scripts/node
# A new volume takes its owner from the folder it covers; compiled modules are kept in .cache.
RUN mkdir /data .cache && chown node:node /data .cache
VOLUME /data
USER node
EXPOSE 4680
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.TACHO_PORT || 4680}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# The script sets the memory settings, then becomes Node: SIGTERM reaches the service, and it can drain.
ENTRYPOINT ["/app/scripts/node", "/app/packages/cli/dist/main.js"]
CMD ["serve"]
