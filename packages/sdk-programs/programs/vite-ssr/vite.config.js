// `noExternal` bundles the SDK too, as hosts without node_modules do.
export default process.env.BUNDLE ? { ssr: { noExternal: true } } : {}
