/**
 * How long a server asks us to wait, in its own words: "try again in 300 seconds", "greylisted for 5 minutes".
 *
 * Called by the classifier. Pure; SMTP has no field for it, so this reads prose.
 */

/** No server's wish keeps a message waiting for longer. */
const MAX_DELAY_MS = 86_400_000

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }

/** A word that makes the number a wish of the server; other numbers count messages, or tell the past. */
const CUE = '(?:try|retry|again|wait|come back|gr[ae]y-?listed|gr[ae]y-?listing)'
const AMOUNT = new RegExp(
  `\\b${CUE}\\b[^\\d.;]{0,40}\\b(\\d{1,6}) ?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\\b`,
)
/** `in 00:04:59`, as policy servers write it. */
const CLOCK = new RegExp(`\\b${CUE}\\b[^\\d.;]{0,40}\\b(\\d{1,2}):(\\d\\d):(\\d\\d)\\b`)

/**
 * @param text in lower case
 * @returns ms, at most a day; undefined where the text names no delay
 */
export function readRetryDelay(text: string): number | undefined {
  const ms = readAmount(text) ?? readClock(text)
  return ms === undefined || ms <= 0 ? undefined : Math.min(ms, MAX_DELAY_MS)
}

function readAmount(text: string): number | undefined {
  const [, amount, unit = ''] = AMOUNT.exec(text) ?? []
  const unitMs = UNIT_MS[unit.charAt(0)]
  return amount === undefined || unitMs === undefined ? undefined : Number(amount) * unitMs
}

function readClock(text: string): number | undefined {
  const [, hours, minutes, seconds] = CLOCK.exec(text) ?? []
  return hours === undefined
    ? undefined
    : ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000
}
