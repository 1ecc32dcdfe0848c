/**
 * One message offered over an open session: MAIL, RCPT, DATA, the message, the last dot.
 *
 * Called by `smtp-agent.ts`. Never opens or chooses a connection. Standards: RFC 5321 §3.3, §4.1.1.4, §4.5.3.2; RFC 2920
 * (PIPELINING), RFC 1870 (SIZE), RFC 6152 (8BITMIME), RFC 6531 (SMTPUTF8). Fails: never rejects; the end says how far it
 * came. After the last dot is sent and before its reply has come, nobody can know whether the message was taken
 * (RFC 5321 §4.5.3.2.6): that ends `broken` at stage `final_dot`, and the message must not be offered elsewhere at once.
 *
 *   [RSET] -> MAIL -> RCPT -> DATA -> message -> dot -> reply
 *   with PIPELINING the commands up to DATA go out together and their replies are read in order
 */
import { isAscii } from 'node:buffer'
import type { SmtpReply, Stage } from '../../mail/outcome.js'
import type { Clock } from '../../world/time/clock.js'
import type { Timeouts } from '../mta-options.js'
import { encodeData } from './smtp-data.js'
import type { SmtpConnection } from './smtp-connection.js'
import { Broken, endOf, type SmtpEnd } from '../smtp-end.js'
import type { Extensions, SmtpSession } from './smtp-session.js'
import { withoutLines } from './smtp-reply.js'

export interface Envelope {
  /** Empty for the null return path `<>`. */
  readonly sender: string
  readonly recipient: string
  /** Whatever the addresses above are, the message itself needs it. */
  readonly needsSmtpUtf8?: boolean
}

export interface TransactionOptions {
  readonly timeouts: Timeouts
  /** Begin with RSET, as a connection that carried a message before needs it. */
  readonly reset: boolean
  readonly clock: Clock
  /** When sender and recipient have to be taken; on the monotonic clock, ms. */
  readonly deadline: number
  /** Breaks off what is not past the last dot. */
  readonly signal: AbortSignal
}

/**
 * A message that leaves more slowly is given up. Each block has its own time (RFC 5321 §4.5.3.2.5), but four hundred of them,
 * each taken at the last moment, would hold a connection for a day.
 */
const SLOWEST_OCTETS_PER_SECOND = 4_096

interface Step {
  readonly stage: Stage
  readonly line: string
  readonly timeoutMs: number
  /** First digit of the reply that lets the dialogue go on. */
  readonly expected: 2 | 3
}

/** @param message lines end in CRLF; dots as they are */
export async function transact(
  session: SmtpSession,
  envelope: Envelope,
  message: Buffer,
  options: TransactionOptions,
): Promise<SmtpEnd> {
  const { connection, extensions } = session
  const needs = needsOf(envelope, message)
  const lacking = findLacking(needs, message.length, extensions)
  if (lacking !== undefined) return { accepted: false, stage: 'mail', broken: lacking }

  connection.limitUntil(options.deadline)
  const progress: Progress = { stage: 'mail', refusal: undefined, isPastFinalDot: false }
  const abandon = () => {
    if (!progress.isPastFinalDot)
      connection.break(new Broken('aborted', 'given up because this server is shutting down'))
  }
  options.signal.addEventListener('abort', abandon, { once: true })
  if (options.signal.aborted) abandon()
  try {
    const steps = stepsOf(envelope, message.length, needs, extensions, options)
    if (extensions.has('PIPELINING')) await offerTogether(connection, steps, progress)
    else await offerInTurn(connection, steps, progress)
    const end =
      progress.refusal === undefined
        ? await sendMessage(connection, message, options, progress)
        : refused(progress)
    // RFC 5321 §4.2.1: after 421 the server closes its end.
    if (end.reply?.code === 421) connection.close()
    return end
  } catch (thrown) {
    connection.close()
    // A refusal stands, even if the connection broke before the rest of the pipelined replies.
    return progress.refusal === undefined ? endOf(progress.stage, thrown) : refused(progress)
  } finally {
    options.signal.removeEventListener('abort', abandon)
    connection.limitUntil(Infinity)
  }
}

interface Progress {
  stage: Stage
  /** The first reply that said no; later ones only follow from it. */
  refusal: { readonly stage: Stage; readonly reply: SmtpReply } | undefined
  isPastFinalDot: boolean
}

function refused({ refusal, stage }: Progress): SmtpEnd {
  if (refusal === undefined) return endOf(stage, new Broken('protocol', 'refused without a reply'))
  return { accepted: false, stage: refusal.stage, reply: refusal.reply }
}

interface Needs {
  readonly smtputf8: boolean
  readonly eightBit: boolean
}

/** What is composed here is 7-bit; relayed mail that must not be touched may be more. */
function needsOf({ sender, recipient, needsSmtpUtf8 = false }: Envelope, message: Buffer): Needs {
  return {
    smtputf8: needsSmtpUtf8 || !isAscii(Buffer.from(sender)) || !isAscii(Buffer.from(recipient)),
    eightBit: !isAscii(message),
  }
}

/**
 * What this server would have to offer. Nothing it says afterwards could help, so it is not even asked (RFC 6531 §3.5,
 * RFC 6152 §3, RFC 1870 §6.1).
 */
function findLacking(needs: Needs, size: number, extensions: Extensions): SmtpEnd['broken'] {
  if (needs.smtputf8 && !extensions.has('SMTPUTF8'))
    return { kind: 'needs_smtputf8', text: 'server does not take addresses beyond ASCII (no SMTPUTF8)' }
  // RFC 6531 §3.1 (8): where there is SMTPUTF8, there is 8BITMIME.
  if (needs.eightBit && !extensions.has('8BITMIME') && !needs.smtputf8)
    return { kind: 'needs_8bitmime', text: 'server does not take 8-bit mail (no 8BITMIME)' }
  const largest = Number(extensions.get('SIZE') ?? 0)
  // RFC 1870 §4: without a number, or with 0, there is no fixed limit.
  if (largest > 0 && size > largest)
    return {
      kind: 'too_big',
      text: `server takes messages of ${largest} octets at most, and this one has ${size}`,
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

async function offerInTurn(connection: SmtpConnection, steps: readonly Step[], progress: Progress) {
  for (const step of steps) {
    connection.send(step.line)
    await readStep(connection, step, progress)
    if (progress.refusal !== undefined) return
  }
}

/** RFC 2920 §3.1: one group that ends in DATA; every reply is read and looked at. */
async function offerTogether(connection: SmtpConnection, steps: readonly Step[], progress: Progress) {
  connection.send(...steps.map(step => step.line))
  let wantsMessage = false
  for (const step of steps) {
    wantsMessage = await readStep(connection, step, progress)
    if (progress.refusal?.reply.code === 421) throw new Broken('closed', 'server is closing the connection')
  }
  if (progress.refusal === undefined || !wantsMessage) return
  // RFC 2920 §3.1: no recipient was taken and yet the server waits for a message: it gets an empty one, whose reply says
  // nothing about ours.
  connection.send('.')
  await connection.readReply(steps.at(-1)?.timeoutMs ?? 0)
}

/** @returns whether the reply was the one that lets the dialogue go on */
async function readStep(connection: SmtpConnection, step: Step, progress: Progress): Promise<boolean> {
  if (progress.refusal === undefined) progress.stage = step.stage
  const reply = await connection.readReply(step.timeoutMs)
  const digit = Math.floor(reply.code / 100)
  if (digit === step.expected) return true
  // Whatever it says, this was about the connection, not about the message: another connection will do.
  if (step.line === 'RSET') throw new Broken('closed', `server answered RSET with ${reply.code}`)
  if (digit < 4) throw new Broken('protocol', `unexpected reply ${reply.code} to ${step.line.slice(0, 4)}`)
  progress.refusal ??= { stage: step.stage, reply: withoutLines(reply) }
  return false
}

async function sendMessage(
  connection: SmtpConnection,
  message: Buffer,
  { timeouts, clock }: TransactionOptions,
  progress: Progress,
): Promise<SmtpEnd> {
  connection.limitUntil(
    clock.monotonic() + timeouts.blockMs + (1_000 * message.length) / SLOWEST_OCTETS_PER_SECOND,
  )
  await connection.write(encodeData(message), timeouts.blockMs, () => {
    progress.stage = 'final_dot'
    connection.limitUntil(Infinity)
    progress.isPastFinalDot = true
  })
  // A server that says no in the middle of the message has said it for the whole of it. The end that it waits for never
  // comes, so the connection is of no further use; it is out of step and nobody takes it again.
  const reply = await connection.readReply(timeouts.finalDotMs)
  const isAccepted = progress.isPastFinalDot && reply.code < 300
  if (!isAccepted && reply.code < 400)
    throw new Broken('protocol', `unexpected reply ${reply.code} to the message`)
  return { accepted: isAccepted, stage: progress.stage, reply: withoutLines(reply) }
}
