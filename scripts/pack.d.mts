/** Packs server, console and command into `folder` and returns the path of the tarball. */
export function pack(folder: string): string
