/**
 * A finished message as text for people and programs that show it.
 *
 * Called by the local inbox and by commands that print mail. Pure. Fails: never; octets that are no UTF-8 (text that its
 * author signed in an older charset) are shown one character each.
 */
import { isUtf8 } from 'node:buffer'

export function octetsToText(message: Buffer): string {
  return message.toString(isUtf8(message) ? 'utf8' : 'latin1')
}
