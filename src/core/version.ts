/**
 * The program's version. A build says which (`packaging/version`: that of package.json, and the commit where that is no release); what
 * was not built, as in tests, has that of package.json alone, which a test holds.
 */
declare const POSTROAD_VERSION: string | undefined

export const VERSION = typeof POSTROAD_VERSION === 'string' ? POSTROAD_VERSION : '0.1.0'
