/** Who did something. What an import brought is the word of its file. */
export function authorText(name: string, importedAt: string | null): string {
  return importedAt === null ? name : `${name} (imported)`
}
