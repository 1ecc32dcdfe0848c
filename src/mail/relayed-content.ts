/**
 * Content that came as a finished message: relayed mail, and reports and forwards that the appliance writes itself.
 *
 * Beside `ComposedContent` of `compose.ts`; rendering brings it to 7-bit and signs it. Values only.
 */
import type { Letter } from './compose/compose.js'

export interface RelayedContent {
  readonly kind: 'relayed'
  /** For people: traces, the local inbox. */
  readonly subject: string
  /** The whole message, CRLF line ends; 8-bit or long-lined as it came. With `letter` its header alone. */
  readonly message: Buffer
  /** What is written behind the header, whose subject and MIME fields were left out. */
  readonly letter?: Letter
}
