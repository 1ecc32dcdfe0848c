/**
 * The operator's patterns for domains and hosts: `example.com`, `*.example.com` (every name below it, not itself), `*`.
 *
 * Called by `route.ts` and `tls-demand.ts`. Pure. Not the patterns of MTA-STS, whose star stands for one label only.
 */

/** @param name A-labels, lower case */
export function matchesPattern(pattern: string, name: string): boolean {
  const wanted = pattern.toLowerCase()
  if (wanted === '*') return true
  return wanted.startsWith('*.') ? name.endsWith(wanted.slice(1)) : name === wanted
}
