/** Loaded into server processes of tests: a signal causes an uncaught error. */
process.on('SIGUSR2', () => void Promise.reject(new Error('an error that no code catches')))
