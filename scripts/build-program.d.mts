/** Builds the program if a source is newer, and resolves with its folder. */
export function buildProgram(): Promise<string>
