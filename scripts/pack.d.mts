/** Packs server, console and command into `folder` and resolves with the path of the tarball. */
export function pack(folder: string): Promise<string>
