/** A server that takes thousands of mails and keeps them: Postfix's smtp-sink where it is installed and may be started, else our own. */
import { accessSync, constants } from 'node:fs'
import { userInfo } from 'node:os'
import type { Test } from 'tap'
import { openSmtpSink } from '../program/debian.js'
import { openSink } from './sink.js'

const POSTFIX_SINK = '/usr/sbin/smtp-sink'

export interface MassSink {
  readonly port: number
  /** Accepted so far, as they came. */
  mails(): readonly Buffer[]
}

export async function openMassSink(t: Test): Promise<MassSink> {
  if (!isExecutable(POSTFIX_SINK) || userInfo().uid !== 0) {
    const sink = await openSink(t, { hasTls: false })
    return { port: sink.port, mails: () => sink.accepted.map(({ raw }) => raw) }
  }
  const sink = await openSmtpSink(t)
  return { port: sink.port, mails: () => sink.mails().map(({ raw }) => raw) }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
