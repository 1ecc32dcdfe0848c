/**
 * SQL of attribution: finds the message that led to a conversion.
 *
 * Uses an index of opened messages only (a click also marks its message opened), so the cost does not grow with the number of messages.
 */
import type { Queries } from '../../db/database.js'
import { flag } from '../../db/tables.js'
import { normalizedAddress } from '../../mail/address.js'
import { isSpelled, recipientSpellings, type Spellings } from '../../messages/message-store.js'
import { DAY_MS } from '../day.js'

export interface Attribution {
  readonly messageId: string
  readonly campaignId: string | null
}

export interface Converted {
  readonly workspaceId: string
  /** The contact's address. */
  readonly email: string
  /** Sandbox mail is only credited with sandbox conversions. */
  readonly isSandbox: boolean
  /** Ms since epoch UTC. */
  readonly convertedAt: number
}

export type FindAttribution = (db: Queries, converted: Converted) => Promise<Attribution | undefined>

const WINDOW_MS = 7 * DAY_MS

/** The message to this address last clicked within seven days, else the one last opened within them. */
export const lastEngagement: FindAttribution = async (db, converted) => {
  const { workspaceId, email } = converted
  const spellings = await recipientSpellings(db, workspaceId, normalizedAddress(email))
  return (
    (await lastOf(db, converted, spellings, 'clicked_at')) ?? lastOf(db, converted, spellings, 'opened_at')
  )
}

async function lastOf(
  db: Queries,
  { workspaceId, isSandbox, convertedAt }: Converted,
  spellings: Spellings,
  moment: 'clicked_at' | 'opened_at',
): Promise<Attribution | undefined> {
  const row = await db
    .selectFrom('messages')
    .select(['id', 'campaign_id'])
    .where('workspace_id', '=', workspaceId)
    .where(isSpelled(spellings))
    .where('opened_at', 'is not', null)
    .where(moment, '>=', convertedAt - WINDOW_MS)
    .where(moment, '<=', convertedAt)
    .where('is_sandbox', '=', flag(isSandbox))
    .orderBy(moment, 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && { messageId: row.id, campaignId: row.campaign_id }
}
