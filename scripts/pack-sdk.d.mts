/** Packs the SDK into `folder` and returns the path of the tarball. */
export function packSdk(folder: string): Promise<string>
