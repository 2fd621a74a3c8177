/** The interface's numbers that recording needs. A test compares them with the contract's. */
export const LIMITS = {
  batchEvents: 100,
  batchBytes: 1_048_576,
  payloadBytes: 262_144,
  payloadDepthLevels: 200,
  clientIdChars: 120,
  runIdChars: 255,
  eventTypeChars: 50,
  labelChars: 255,
  /** Agent names, agent ids, session ids, schema versions and span ids. */
  textChars: 1_024,
  /** The service shows no more of a release. */
  releaseChars: 100,
} as const
