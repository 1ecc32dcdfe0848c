/**
 * SQL of a campaign's results among the members of a segment.
 *
 * Scans the audience's contacts in pieces, as counting a segment does: for `Database.slowReader`, within the limit of `patience`. Fails:
 * AppError unavailable on timeout.
 */
import { sql } from 'kysely'
import { whereOf } from '../../audience/segments/audience-query-store.js'
import type { ConditionContext } from '../../audience/segments/conditions-store.js'
import type { Group } from '../../audience/segments/read-conditions.js'
import { eachPiece, type Patience } from '../../audience/scan-store.js'
import type { Queries } from '../../db/database.js'

/** Numbers of recipients. */
export interface SegmentResult {
  readonly recipients: number
  readonly delivered: number
  readonly opened: number
  readonly clicked: number
  readonly bounced: number
}

const NOBODY: SegmentResult = { recipients: 0, delivered: 0, opened: 0, clicked: 0, bounced: 0 }

/** Members as of now, who were mailed: recipients that were skipped or cancelled are left out. */
export async function countInSegment(
  db: Queries,
  campaign: number,
  segment: Group,
  context: ConditionContext,
  checkTimeout: Patience,
): Promise<SegmentResult> {
  const meant = await whereOf(db, segment, context)
  const counted = await eachPiece(meant?.pieces ?? [], checkTimeout, async piece => {
    const { rows } = await sql<SegmentResult>`
      select count(*) as recipients,
        count(*) filter (where status in ('delivered', 'opened', 'clicked')) as delivered,
        count(*) filter (where has_opened = 1) as opened, count(*) filter (where has_clicked = 1) as clicked,
        count(*) filter (where status = 'bounced') as bounced
      from campaign_recipients
      where campaign = ${campaign} and contact between ${piece.first} and ${piece.last}
        and status not in ('pending', 'skipped', 'cancelled')
        and contact in (select seq from contacts where ${sql.join(meant?.where(piece) ?? [], sql` and `)})`.execute(
      db,
    )
    return rows[0] ?? NOBODY
  })
  return counted.reduce(
    (sum, one) => ({
      recipients: sum.recipients + one.recipients,
      delivered: sum.delivered + one.delivered,
      opened: sum.opened + one.opened,
      clicked: sum.clicked + one.clicked,
      bounced: sum.bounced + one.bounced,
    }),
    NOBODY,
  )
}
