/** The parts of the page, each with what its benchmarks have in common. */

export const PARTS = {
  sqlite: {
    title: 'The embedded engine',
    about: [
      `**Recording** means: 8 connections send requests of 100 events, each event 940 bytes of JSON; each connection sends its next request when it \
has the answer to the one before. An answer comes after the events are on disk. The bare limit is one process that writes the same rows into the \
same tables and indexes through better-sqlite3, with the same durability (\`synchronous=FULL\`), the same checkpoints, and as many events in a commit \
as the server had on average in that round. It parses nothing, checks nothing and answers nobody; the time it takes to make its rows is not counted.`,
      `**Reading while recording** means: 200 pages a second are asked for at fixed times, while events are recorded at half the maximum rate. Lists \
have 25 runs: the newest, those that failed, those of one agent, and a page further back. Timelines are pages of 100 events of runs scattered over the \
whole store, in which one run in a hundred has 100 events and the others 9 or 10. The bare limit is the same SQL through better-sqlite3, on the same \
file at the same time, without a server.`,
    ],
  },
  process: { title: 'The process', about: [] },
  postgres: {
    title: 'PostgreSQL',
    about: [
      `PostgreSQL 18 runs on the same machine and takes its share of it: \`fsync\` and \`synchronous_commit\` on, \`shared_buffers=1GB\`, \
\`min_wal_size=4GB\`, \`max_wal_size=4GB\`, otherwise as it comes. Its write-ahead log has been filled once, as it is after some hours of work: to make \
a new file of the log holds up all commits for 50 ms here.`,
      `**Recording** and **reading while recording** mean the same as above. The bare limit of recording is one process that writes the same rows \
into the same tables and indexes through \`pg\`, over 4 connections, with as many events in a transaction as the server had on average in that round; \
each transaction is one round trip. It parses nothing, checks nothing, locks nothing and answers nobody. Its rows travel as the JSON parameter of an \
INSERT, as those of a server must that leaves it to the database to pass over repeats; beside it stands what COPY does, which cannot: the server looks \
for repeats itself, and copies. The bare limit of reading is the same SQL \
through \`pg\`, on the same database at the same time, without a server.`,
    ],
  },
  policies: { title: 'Policies', about: [] },
  sdk: { title: 'The SDK', about: [] },
} as const satisfies Record<string, { title: string; about: readonly string[] }>

export type PartName = keyof typeof PARTS
