/**
 * The program's version. Builds inject it (`packaging/version`: that of package.json, plus the commit if it is no release). Without a
 * build, as in tests, it is the version in package.json, which a test verifies.
 */
declare const POSTROAD_VERSION: string | undefined

export const VERSION = typeof POSTROAD_VERSION === 'string' ? POSTROAD_VERSION : '0.1.0'
