/** Latencies and calls without a cost, as the tables before migrations 030 and 031 have them. The same on both engines. */
const ENV = '00000000-0000-4000-8000-000000000001'
const AGENT = '00000000-0000-4000-8000-000000000002'
const VERSION = '00000000-0000-4000-8000-000000000003'

/** The last migration before them. */
export const BEFORE = 29

const rows = (table: string, ...values: string[]) => `INSERT INTO ${table} VALUES ${values.join(', ')}`
const latency = (hour: number, model: string, call: string, bucket: number, slot: number, calls: number) =>
  `('${ENV}', ${hour}, '${AGENT}', '${model}', '${call}', ${bucket}, ${slot}, ${calls})`
const tool = (hour: number, key: string, bucket: number, calls: number) =>
  `('${ENV}', ${hour}, '${AGENT}', '${key}', ${bucket}, 0, ${calls}, 0, 0, 0)`
const uncosted = (group: string, key: string, calls: number) =>
  `('${ENV}', '${group}', 0, '${key}', 'm', 0, 0, ${calls}, 10, 0, 0, 0, 5, 0)`

export const FILL = [
  rows(
    'latency_hours',
    latency(0, 'm', 'LLM_CALL', 9, 0, 4),
    latency(0, '', 'TOOL_CALL', 9, 0, 3),
    latency(0, '', 'TOOL_CALL', 9, 1, 2),
    latency(1, '', 'TOOL_CALL', 9, 0, 5),
    latency(2, '', 'TOOL_CALL', 9, 0, 5),
  ),
  // Hour 0 is older than this table, hour 1 saw its beginning, hour 2 has all calls.
  rows(
    'tool_hours',
    tool(1, 'pay', 9, 2),
    tool(1, '', 9, 1),
    tool(1, 'pay', -1, 7),
    tool(2, 'pay', 9, 3),
    tool(2, 'ask', 9, 2),
  ),
  rows('uncosted_hours', uncosted('agent', AGENT, 2), uncosted('promptVersion', VERSION, 2)),
]

export const READ = [
  'SELECT hour, tool_key, bucket, CAST(SUM(calls) AS INTEGER) AS calls FROM tool_hours GROUP BY hour, tool_key, bucket ORDER BY hour, tool_key, bucket',
  'SELECT hour, model_key, bucket, calls FROM latency_hours',
  'SELECT agent_id, calls, input_tokens FROM uncosted_hours',
]

export const FOUND = [
  [
    { hour: 0, tool_key: '', bucket: 9, calls: 5 },
    { hour: 1, tool_key: '', bucket: 9, calls: 3 },
    { hour: 1, tool_key: 'pay', bucket: -1, calls: 7 },
    { hour: 1, tool_key: 'pay', bucket: 9, calls: 2 },
    { hour: 2, tool_key: 'ask', bucket: 9, calls: 2 },
    { hour: 2, tool_key: 'pay', bucket: 9, calls: 3 },
  ],
  [{ hour: 0, model_key: 'm', bucket: 9, calls: 4 }],
  [{ agent_id: AGENT, calls: 2, input_tokens: 10 }],
]
