/**
 * Packs server, console and command into `folder` and resolves with the path of the tarball. `offline`: with its packages and Node,
 * for this platform.
 */
export function pack(folder: string, options?: { offline?: boolean }): Promise<string>
