/** Durations and sizes in the operator's notation: `90s`, `1h30m`, `25MB`. Pure; invalid text parses to `undefined`. */

const DURATION_UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const SIZE_UNITS = { B: 1, KB: 1_024, MB: 1_024 ** 2, GB: 1_024 ** 3 } as const

/** @returns milliseconds, or undefined if invalid; the only number allowed without a unit is `0` */
export function parseDuration(text: string): number | undefined {
  const compact = text.replace(/\s+/g, '')
  if (compact === '0') return 0
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d|w))+$/.test(compact)) return undefined
  let total = 0
  for (const [, amount, unit] of compact.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/gy))
    total += Number(amount) * DURATION_UNITS[unit as keyof typeof DURATION_UNITS]
  return Number.isSafeInteger(Math.round(total)) ? Math.round(total) : undefined
}

/** The shortest text that `parseDuration` reads back as the same number of milliseconds. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0'
  let rest = ms
  let text = ''
  for (const unit of ['d', 'h', 'm', 's', 'ms'] as const) {
    const count = Math.floor(rest / DURATION_UNITS[unit])
    if (count > 0) text += `${count}${unit}`
    rest -= count * DURATION_UNITS[unit]
  }
  return text
}

/** @returns bytes (units are powers of 1,024), or undefined if invalid */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(B|KB|MB|GB)$/i.exec(text.trim())
  if (!match) return undefined
  const unit = (match[2] ?? '').toUpperCase() as keyof typeof SIZE_UNITS
  return Math.floor(Number(match[1]) * SIZE_UNITS[unit])
}

/** The shortest text that `parseSize` reads back as the same number of bytes. */
export function formatSize(bytes: number): string {
  for (const unit of ['GB', 'MB', 'KB'] as const)
    if (bytes >= SIZE_UNITS[unit] && bytes % SIZE_UNITS[unit] === 0)
      return `${bytes / SIZE_UNITS[unit]}${unit}`
  return `${bytes}B`
}

/** For people, in decimal units: `3.6 GB`, `47.2 MB`. */
export function roughSize(octets: number): string {
  return octets >= 1e9 ? `${(octets / 1e9).toFixed(1)} GB` : `${(octets / 1e6).toFixed(1)} MB`
}
