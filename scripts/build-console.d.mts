/** Importing it builds the console if a source is newer. */
export {}
