/**
 * One SMTP mail transaction over an open session: MAIL, RCPT, DATA, message, final dot.
 *
 * Never rejects; the result says how far it got. Once the final dot was sent, a lost reply leaves it unknown whether the server accepted
 * the message (RFC 5321 §4.5.3.2.6). That ends as a failure at stage `final_dot`, and the message must not be offered to another host in
 * this attempt.
 * Standards: RFC 5321 §2.3.8, §3.3, §4.1.1.4, §4.5.2, §4.5.3.2; RFC 2920 (PIPELINING), RFC 1870 (SIZE), RFC 6152 (8BITMIME), RFC 6531
 * (SMTPUTF8).
 *
 *   [RSET] -> MAIL -> RCPT -> DATA -> message -> final dot -> reply
 *   with PIPELINING the commands up to DATA are sent together and their replies read in order
 */
import { isAscii } from 'node:buffer'
import type { SmtpReply, Stage } from '../../mail/outcome.js'
import type { Clock } from '../../world/time/clock.js'
import type { Timeouts } from '../mta-options.js'
import { type SmtpConnection, toSmtpReply } from './smtp-connection.js'
import { SmtpFailure, toSmtpResult, type SmtpResult } from '../smtp-result.js'
import type { Extensions, SmtpSession } from './smtp-session.js'

export interface Envelope {
  /** Empty for the null return path `<>`. */
  readonly sender: string
  readonly recipient: string
  /** The message itself needs SMTPUTF8, whatever the addresses. */
  readonly needsSmtpUtf8?: boolean
}

interface TransactionOptions {
  readonly timeouts: Timeouts
  /** Start with RSET, for a connection that has carried a message before. */
  readonly reset: boolean
  readonly clock: Clock
  /** For the envelope to be accepted; monotonic, ms. */
  readonly deadline: number
  /** Aborts the transaction until the final dot is sent. */
  readonly signal: AbortSignal
}

/**
 * Slower transfers are aborted. The per-block limit (RFC 5321 §4.5.3.2.5) alone would let a trickling server hold a connection for a day.
 */
const MIN_OCTETS_PER_SECOND = 4_096

interface Step {
  readonly stage: Stage
  readonly line: string
  readonly timeoutMs: number
  /** First digit of a success reply. */
  readonly expected: 2 | 3
}

/** @param message lines end in CRLF; not dot-stuffed */
export async function transact(
  session: SmtpSession,
  envelope: Envelope,
  message: Buffer,
  options: TransactionOptions,
): Promise<SmtpResult> {
  const { connection, extensions } = session
  const needs = needsOf(envelope, message)
  const lacking = findMissingExtension(needs, message.length, extensions)
  if (lacking !== undefined) return { accepted: false, stage: 'mail', failure: lacking }

  connection.setDeadline(options.deadline)
  const progress: Progress = { stage: 'mail', rejection: undefined, isPastFinalDot: false }
  const abandon = () => {
    if (!progress.isPastFinalDot)
      connection.fail(new SmtpFailure('aborted', 'aborted because this server is shutting down'))
  }
  options.signal.addEventListener('abort', abandon, { once: true })
  if (options.signal.aborted) abandon()
  try {
    const steps = stepsOf(envelope, message.length, needs, extensions, options)
    if (extensions.has('PIPELINING')) await sendPipelined(connection, steps, progress)
    else await sendOneByOne(connection, steps, progress)
    const end =
      progress.rejection === undefined
        ? await sendMessage(connection, message, options, progress)
        : rejected(progress)
    // RFC 5321 §4.2.1: after 421 the server closes the connection.
    if (end.reply?.code === 421) connection.close()
    return end
  } catch (thrown) {
    connection.close()
    // A rejection counts even if the connection failed before the remaining pipelined replies.
    return progress.rejection === undefined ? toSmtpResult(progress.stage, thrown) : rejected(progress)
  } finally {
    options.signal.removeEventListener('abort', abandon)
    connection.setDeadline(Infinity)
  }
}

interface Progress {
  stage: Stage
  /** The first rejection; later ones are consequences. */
  rejection: { readonly stage: Stage; readonly reply: SmtpReply } | undefined
  isPastFinalDot: boolean
}

function rejected({ rejection, stage }: Progress): SmtpResult {
  if (rejection === undefined)
    return toSmtpResult(stage, new SmtpFailure('protocol', 'rejected without a reply'))
  return { accepted: false, stage: rejection.stage, reply: rejection.reply }
}

interface Needs {
  readonly smtputf8: boolean
  readonly eightBit: boolean
}

/** Composed mail is 7-bit; relayed mail that must not be re-encoded may not be. */
function needsOf({ sender, recipient, needsSmtpUtf8 = false }: Envelope, message: Buffer): Needs {
  return {
    smtputf8: needsSmtpUtf8 || !isAscii(Buffer.from(sender)) || !isAscii(Buffer.from(recipient)),
    eightBit: !isAscii(message),
  }
}

/** A required extension that the server does not offer. The transaction is then not started (RFC 6531 §3.5, RFC 6152 §3, RFC 1870 §6.1). */
function findMissingExtension(needs: Needs, size: number, extensions: Extensions): SmtpResult['failure'] {
  if (needs.smtputf8 && !extensions.has('SMTPUTF8'))
    return { kind: 'needs_smtputf8', text: 'server does not support non-ASCII addresses (SMTPUTF8)' }
  // RFC 6531 §3.1 (8): SMTPUTF8 implies 8BITMIME.
  if (needs.eightBit && !extensions.has('8BITMIME') && !needs.smtputf8)
    return { kind: 'needs_8bitmime', text: 'server does not support 8-bit mail (8BITMIME)' }
  const largest = Number(extensions.get('SIZE') ?? 0)
  // RFC 1870 §4: no number, or 0, means no fixed limit.
  if (largest > 0 && size > largest)
    return {
      kind: 'too_big',
      text: `the message has ${size} octets and the server accepts at most ${largest}`,
    }
  return undefined
}

function stepsOf(
  { sender, recipient }: Envelope,
  size: number,
  needs: Needs,
  extensions: Extensions,
  { reset, timeouts }: TransactionOptions,
): Step[] {
  const parameters = [
    extensions.has('SIZE') ? ` SIZE=${size}` : '',
    needs.eightBit && extensions.has('8BITMIME') ? ' BODY=8BITMIME' : '',
    needs.smtputf8 ? ' SMTPUTF8' : '',
  ].join('')
  const steps: Step[] = [
    { stage: 'mail', line: `MAIL FROM:<${sender}>${parameters}`, timeoutMs: timeouts.mailMs, expected: 2 },
    { stage: 'rcpt', line: `RCPT TO:<${recipient}>`, timeoutMs: timeouts.rcptMs, expected: 2 },
    { stage: 'data', line: 'DATA', timeoutMs: timeouts.dataMs, expected: 3 },
  ]
  if (reset)
    steps.unshift({ stage: 'mail', line: 'RSET', timeoutMs: timeouts.ehloMs ?? timeouts.mailMs, expected: 2 })
  return steps
}

async function sendOneByOne(connection: SmtpConnection, steps: readonly Step[], progress: Progress) {
  for (const step of steps) {
    connection.send(step.line)
    await readStep(connection, step, progress)
    if (progress.rejection !== undefined) return
  }
}

/** RFC 2920 §3.1: DATA must be last in the group. */
async function sendPipelined(connection: SmtpConnection, steps: readonly Step[], progress: Progress) {
  connection.send(...steps.map(step => step.line))
  let wantsMessage = false
  for (const step of steps) {
    wantsMessage = await readStep(connection, step, progress)
    if (progress.rejection?.reply.code === 421)
      throw new SmtpFailure('closed', 'server is closing the connection')
  }
  if (progress.rejection === undefined || !wantsMessage) return
  // RFC 2920 §3.1: if no recipient was accepted but the server replied 354, it gets an empty message; its reply says nothing about ours.
  connection.send('.')
  await connection.readReply(steps.at(-1)?.timeoutMs ?? 0)
}

/** @returns whether the reply was a success */
async function readStep(connection: SmtpConnection, step: Step, progress: Progress): Promise<boolean> {
  if (progress.rejection === undefined) progress.stage = step.stage
  const reply = await connection.readReply(step.timeoutMs)
  const digit = Math.floor(reply.code / 100)
  if (digit === step.expected) return true
  // A failed RSET concerns the connection, not the message; the caller dials a new one.
  if (step.line === 'RSET') throw new SmtpFailure('closed', `server answered RSET with ${reply.code}`)
  if (digit < 4)
    throw new SmtpFailure('protocol', `unexpected reply ${reply.code} to ${step.line.slice(0, 4)}`)
  progress.rejection ??= { stage: step.stage, reply: toSmtpReply(reply) }
  return false
}

async function sendMessage(
  connection: SmtpConnection,
  message: Buffer,
  { timeouts, clock }: TransactionOptions,
  progress: Progress,
): Promise<SmtpResult> {
  connection.setDeadline(
    clock.monotonic() + timeouts.blockMs + (1_000 * message.length) / MIN_OCTETS_PER_SECOND,
  )
  await connection.write(encodeData(message), timeouts.blockMs, () => {
    progress.stage = 'final_dot'
    connection.setDeadline(Infinity)
    progress.isPastFinalDot = true
  })
  // The server may reject the message before its end. The final dot is then never sent, so the connection is out of sync and is not reused.
  const reply = await connection.readReply(timeouts.finalDotMs)
  const isAccepted = progress.isPastFinalDot && reply.code < 300
  if (!isAccepted && reply.code < 400)
    throw new SmtpFailure('protocol', `unexpected reply ${reply.code} to the message`)
  return { accepted: isAccepted, stage: progress.stage, reply: toSmtpReply(reply) }
}

const LINE_DOT = Buffer.from('\r\n.')
const LINE_END = Buffer.from('\r\n')
const DOT = Buffer.from('.')

/**
 * Encodes a message for DATA: dots at line starts doubled (RFC 5321 §4.5.2), terminated by CRLF.CRLF.
 *
 * @param message lines end in CRLF
 */
export function encodeData(message: Buffer): Buffer {
  const pieces: Buffer[] = []
  if (message[0] === 0x2e) pieces.push(DOT)
  let start = 0
  for (let at = message.indexOf(LINE_DOT); at !== -1; at = message.indexOf(LINE_DOT, at + 2)) {
    pieces.push(message.subarray(start, at + 3), DOT)
    start = at + 3
  }
  pieces.push(message.subarray(start))
  // §4.1.1.4: the CRLF before the final dot ends the last line; a second one would add to the message.
  if (message.length > 0 && !message.subarray(-2).equals(LINE_END)) pieces.push(LINE_END)
  pieces.push(DOT, LINE_END)
  return Buffer.concat(pieces)
}

/**
 * Finds a bare CR or LF. Such a message is never sent: a server that takes a bare LF for a line ending could be made to see the end of the
 * message inside it, followed by a forged one (RFC 5321 §2.3.8, SMTP smuggling).
 *
 * @returns its offset, or undefined if every line ends in CRLF
 */
export function findBareLineEnd(message: Buffer): number | undefined {
  let lastReturn = -2
  for (let at = 0; at < message.length; at++) {
    const octet = message[at]
    if (octet === 0x0d) {
      if (message[at + 1] !== 0x0a) return at
      lastReturn = at
    } else if (octet === 0x0a && lastReturn !== at - 1) {
      return at
    }
  }
  return undefined
}
