/**
 * The workspace's name and postal address as confirmation mails show them.
 *
 * These mails go to addresses that any visitor entered, outside the workspace's limits, so its own texts must not make advertising of
 * them: no links, and not much of anything. Mail clients also make links of bare host names, so only the sender's own may stand there.
 */
import { parseAddress } from '../../mail/address.js'

const MAX_NAME = 60
const MAX_ADDRESS = 200

/** @param fromDomain domain of the mail's From, shown instead of a name that reads as a link */
export function nameInMail(name: string, fromDomain: string): string {
  const shown = oneLine(name)
  if (shown === '' || readsAsLink(shown, fromDomain)) return fromDomain
  return shown.length > MAX_NAME ? `${shown.slice(0, MAX_NAME - 1).trim()}…` : shown
}

/** Empty if it is no postal address. */
export function addressInMail(address: string, fromDomain: string): string {
  const isLong = address.length > MAX_ADDRESS
  return isLong || readsAsLink(address.slice(0, MAX_ADDRESS), fromDomain) ? '' : address
}

/** @param ownDomain host names that are it, or that it belongs to, are none */
export function readsAsLink(text: string, ownDomain: string): boolean {
  // Full-width forms, and the full stops that IDNA takes for dots (UTS #46).
  const plain = text.normalize('NFKC').replace(/[\u3002\uff61]/g, '.')
  if (/:\/\/|@/.test(plain)) return true
  return plain.split(/[^\p{L}\p{M}\p{N}.-]/u).some(word => isForeignHost(word, ownDomain))
}

function isForeignHost(word: string, ownDomain: string): boolean {
  const labels = word.split('.').filter(label => label !== '')
  // No top-level domain has a single letter, and many abbreviations do: `e.V.`, `S.p.A.`.
  if (labels.length < 2 || (labels.at(-1) ?? '').length < 2) return false
  const host = parseAddress(`x@${labels.join('.')}`)?.domain
  return host !== undefined && host !== ownDomain && !ownDomain.endsWith(`.${host}`)
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
}
