/**
 * Ninety days of mail, message by message: who was written to by whom, when, and what became of it.
 *
 * Called by `fill-history.ts`. Pure but for the identifiers: message `n` is always the same, so that runs compare.
 */
import { randomBytes } from 'node:crypto'
import { uuidv7 } from '../../src/core/ids.js'
import type { MessageStatus } from '../../src/messages/message-status.js'
import { recipient } from '../fill/letters.js'

export const DAY_MS = 86_400_000
export const HISTORY_DAYS = 90
/** Messages of a campaign and the single sends that leave meanwhile. */
const PER_BLOCK = 10_000
/** Of ten messages. */
const OF_CAMPAIGNS = 7
const DOMAINS = 1_000
/** Everybody is written to a few times. */
const MESSAGES_PER_READER = 4
const SCHEDULED_AT_MOST_MS = 2 * DAY_MS
/** The newest, which have not left yet. */
const WAITING = 1_000

export interface PastMessage {
  readonly id: string
  /** 0 for the workspace that is measured. */
  readonly workspace: number
  /** Number of the campaign; undefined for a single send. */
  readonly campaign: number | undefined
  readonly recipient: string
  readonly status: MessageStatus
  /** Of status sent: still in the queue. */
  readonly isWaiting: boolean
  readonly createdAt: number
}

export interface History {
  readonly messages: number
  /** Workspaces altogether. */
  readonly workspaces: number
  readonly until: number
}

const ID_RANDOM_BYTES = 10
/** Drawn ahead: to ask for ten bytes takes as long as to write a row. */
let randomness = Buffer.alloc(0)

export function newId(moment: number): string {
  if (randomness.length < ID_RANDOM_BYTES) randomness = randomBytes(1_000 * ID_RANDOM_BYTES)
  const id = uuidv7(moment, randomness)
  randomness = randomness.subarray(ID_RANDOM_BYTES)
  return id
}

/** @param n from 0, oldest first */
export function pastMessage(n: number, { messages, workspaces, until }: History): PastMessage {
  const createdAt = Math.floor(until - ((messages - n) * HISTORY_DAYS * DAY_MS) / messages)
  const isOfCampaign = n % 10 < OF_CAMPAIGNS
  const campaign = isOfCampaign ? Math.floor(n / PER_BLOCK) : undefined
  const isWaiting = n >= messages - Math.min(WAITING, messages / 100)
  const mayBeScheduled = !isOfCampaign && until - createdAt < SCHEDULED_AT_MOST_MS
  return {
    id: newId(createdAt),
    workspace: workspaceOf(campaign ?? n, workspaces),
    campaign,
    recipient: recipient(scattered(n) % Math.ceil(messages / MESSAGES_PER_READER), DOMAINS),
    status: isWaiting ? 'sent' : fateOf(scattered(n + 1) % 1_000, mayBeScheduled),
    isWaiting,
    createdAt,
  }
}

/** Seven of ten are of the first workspace. */
export function workspaceOf(number: number, workspaces: number): number {
  const part = scattered(number) % 10
  return part < 7 ? 0 : 1 + (part % (workspaces - 1))
}

/** @param lot 0..999 */
function fateOf(lot: number, mayBeScheduled: boolean): MessageStatus {
  if (lot < 20) return 'bounced'
  if (lot < 23) return 'failed'
  if (lot < 31) return 'suppressed'
  if (lot < 32) return mayBeScheduled ? 'cancelled' : 'delivered'
  if (lot < 132 && mayBeScheduled) return 'scheduled'
  if (lot < 382) return 'opened'
  if (lot < 462) return 'clicked'
  return 'delivered'
}

/** A number that has nothing to do with its neighbours (the mixing step of MurmurHash3). */
export function scattered(n: number): number {
  let mixed = n ^ 0x9e3779b9
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
