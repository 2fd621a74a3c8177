/**
 * Packs server, console and command into `folder` and resolves with the path of the tarball. `offline`: with its packages and Node,
 * for this platform.
 */
export function pack(folder: string, options?: { offline?: boolean }): Promise<string>
/** Resolves with a temporary folder of what every package has. */
export function stagePackage(): Promise<string>
/** Packs a staged folder. After `offline`, it has the other packages too. */
export function packStaged(staged: string, folder: string, options?: { offline?: boolean }): Promise<string>
