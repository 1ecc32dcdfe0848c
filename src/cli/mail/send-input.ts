/**
 * Input of `postroad send`: the text of a mail, as mail(1) reads it, or a whole message, as sendmail(8) does.
 *
 * A message is processed like one submitted over SMTP. Lines may end in LF or CRLF. Fails as submission does, with AppError or SmtpRefusal.
 */
import type { Appliance } from '../../appliance/appliance.js'
import { AppError } from '../../core/errors.js'
import type { Principal } from '../../http/principal.js'
import { unfoldedValue } from '../../mail/mime/header-fields.js'
import { mailboxesOf, readAddressList } from '../../mail/relay/address-list.js'
import { readRelayedHeader, assertNoFaults } from '../../mail/relay/relayed-header.js'
import { SubmissionGatherer } from '../../msa/submission/submission-gatherer.js'
import { SubmissionTransaction } from '../../msa/submission/submission-transaction.js'
import type { SenderCache } from '../../msa/sender.js'
import type { SubmitParts } from '../../msa/mail-submission.js'
import { SmtpRefusal } from '../../smtp/receiver.js'

const PIECE_OCTETS = 65_536
/** mbox separator, which some programs put before the header. */
const MBOX_LINE = /^From [^\n]*\n/

/** @throws AppError validation_error */
export async function readInput(input: AsyncIterable<Buffer | string>, limit: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let octets = 0
  for await (const piece of input) {
    pieces.push(Buffer.from(piece))
    octets += piece.length
    if (octets > limit)
      throw new AppError(
        'validation_error',
        `the input is larger than ${limit} octets; raise limits.message_size`,
      )
  }
  return Buffer.concat(pieces)
}

export interface GivenMessage {
  readonly octets: Buffer
  /** Envelope; taken from the header if absent (From; To, Cc and Bcc). */
  readonly from: string | undefined
  readonly to: string | undefined
}

/** @returns ids of the first recipients' messages */
export async function sendMessage(
  { newId, config, world }: Appliance,
  submit: SubmitParts & { readonly senders: SenderCache },
  principal: Principal,
  { octets, from, to }: GivenMessage,
): Promise<string[]> {
  const message = Buffer.from(
    octets.toString('latin1').replace(MBOX_LINE, '').replace(/\r?\n/g, '\r\n'),
    'latin1',
  )
  const header = readRelayedHeader(message)
  assertNoFaults(header)
  const named = to === undefined ? header.fields.filter(({ name }) => ['to', 'cc', 'bcc'].includes(name)) : []
  const recipients = to === undefined ? named.flatMap(({ raw }) => addressesIn(unfoldedValue(raw))) : [to]
  if (recipients.length === 0)
    throw new AppError('validation_error', 'no recipient: pass --to, or a message with To, Cc or Bcc', {
      path: 'to',
    })
  const session = {
    id: 'cli',
    peerAddress: '127.0.0.1',
    peerPort: 0,
    heloName: config.hostname,
    isEsmtp: false,
  }
  const parts = {
    ...submit,
    newId,
    log: world.log,
    hostname: config.hostname,
    gatherer: new SubmissionGatherer(submit),
  }
  const mail = { address: from ?? header.from[0]?.address.address ?? '', smtpUtf8: header.isEightBit }
  const transaction = new SubmissionTransaction(parts, session, { principal, isTrusted: true }, mail)
  try {
    for (const address of new Set(recipients)) transaction.addRecipient({ address })
    for (let at = 0; at < message.length; at += PIECE_OCTETS)
      await transaction.write(message.subarray(at, at + PIECE_OCTETS))
    const reply = await transaction.finish()
    return reply.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []
  } catch (error) {
    if (error instanceof SmtpRefusal) throw new AppError('validation_error', error.message)
    throw error
  }
}

function addressesIn(value: string): string[] {
  return mailboxesOf(readAddressList(value)).map(({ address }) => address)
}
