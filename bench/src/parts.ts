/** The parts of the page, each with the text that its benchmarks share. */

export const PARTS = {
  sqlite: {
    title: 'The embedded engine',
    about: [
      `**Recording** means: 8 connections send requests of 100 events, each event 940 bytes of JSON. Each connection sends its next request when it \
has the previous answer. An answer comes after the events are on disk. The bare limit is one process that writes the same rows into the \
same tables and indexes through better-sqlite3, with the same durability (\`synchronous=FULL\`), the same checkpoints, and as many events in a commit \
as the server had on average in that round. It parses nothing, checks nothing and sends no answers. The time to make its rows is not counted.`,
      `**Reading while recording** means: 200 pages a second are requested at fixed times, while events are recorded at half the maximum rate. Lists \
have 25 runs: the newest, the failed ones, those of one agent, and a page further back. Timelines are pages of 100 events of runs from all over the \
store. One run in a hundred has 100 events, the others have 9 or 10. The bare limit is the same SQL through better-sqlite3, on the same \
file at the same time, without a server.`,
    ],
  },
  process: { title: 'The process', about: [] },
  postgres: {
    title: 'PostgreSQL',
    about: [
      `PostgreSQL 18 runs on the same machine and takes its share of it: \`fsync\` and \`synchronous_commit\` on, \`shared_buffers=1GB\`, \
\`min_wal_size=4GB\`, \`max_wal_size=4GB\`, other settings at their defaults. Its write-ahead log was filled once before, as after some hours of work, \
because creating a new log file blocks all commits for 50 ms on this machine.`,
      `**Recording** and **reading while recording** mean the same as above. The bare limit of recording is one process that writes the same rows \
into the same tables and indexes through \`pg\`, over 4 connections, with as many events in a transaction as the server had on average in that round; \
each transaction is one round trip. It parses nothing, checks nothing, locks nothing and sends no answers. There are two bare limits. INSERT sends \
the rows as a JSON parameter, so that the database can skip repeats. COPY is faster but cannot skip repeats; the server finds repeats itself and \
uses COPY. The bare limit of reading is the same SQL \
through \`pg\`, on the same database at the same time, without a server.`,
    ],
  },
  policies: { title: 'Policies', about: [] },
  sdk: { title: 'The SDK', about: [] },
} as const satisfies Record<string, { title: string; about: readonly string[] }>

export type PartName = keyof typeof PARTS
