/**
 * The steps of an A/B test that are not the same as those of any campaign: drawing the sample, and deciding.
 *
 *   not all recipients drawn                draw more                     `drawSome`
 *   recipients of a variant pending         enqueue them                  `expansion/hand-over.ts`
 *   no winner yet, others left              decide, or wait for it        `decideOrWait`
 *   there is a winner                       the rest gets it, as any campaign
 *
 * Each step is one transaction that first looks at the state, so a step that a crash or another node repeats does nothing twice. The winner
 * is set once and never changes; its letter becomes the campaign's in the same transaction.
 */
import { SYSTEM, type Actor } from '../../core/actor.js'
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { insertPage } from '../archive/page-store.js'
import type { Campaign } from '../model/campaign.js'
import { changeCampaign, findCampaignBySeq } from '../model/campaign-store.js'
import { logAct } from '../model/campaigns.js'
import { insertLetter } from '../model/letter-store.js'
import { aboutCampaign } from '../model/campaign-stats.js'
import { sampleSizes } from '../model/ab-test.js'
import { standing, winnerByRule } from './decision.js'
import { draw } from './draw.js'
import {
  changeTest,
  changeVariant,
  findTest,
  findVariantLetter,
  listUndrawn,
  markDrawn,
  setWinner,
  type DecidedBy,
} from '../model/variant-store.js'

/** Gives the next recipients their variant, or leaves them to the rest. @returns how many */
export async function drawSome(tx: Tx, seq: number, limit: number, now: number): Promise<number> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  const test = await findTest(tx.db, seq)
  if (!campaign?.abTest || !test || test.drawnAt !== null || isOver(campaign)) return 0
  const contacts = await listUndrawn(tx.db, seq, test.drawnThrough, limit)
  const sizes = sampleSizes(campaign.abTest, campaign.recipients)
  const chosen = draw(
    {
      campaignId: campaign.id,
      wanted: test.variants.map(({ variant, recipients }) => (sizes[variant] ?? 0) - recipients),
      left: campaign.recipients - test.drawn,
    },
    contacts,
  )
  await markDrawn(tx.db, seq, chosen)
  for (const { variant } of test.variants) {
    const count = chosen.filter(([, its]) => its === variant).length
    await changeVariant(tx.db, seq, variant, {}, { recipients: count, pending: count })
  }
  const last = contacts.at(-1)
  await changeTest(tx.db, seq, {
    drawn: test.drawn + contacts.length,
    ...(last === undefined ? {} : { drawn_through: last }),
    ...(contacts.length < limit ? { drawn_at: now } : {}),
  })
  return contacts.length
}

const MINUTE_MS = 60_000

/**
 * Once the whole sample is queued. If it is too early, sets when to look again. A sandbox waits for nothing and nobody: the best variant wins.
 *
 * @returns whether there is a winner now
 */
export async function decideOrWait(tx: Tx, seq: number, now: number): Promise<boolean> {
  const campaign = await findCampaignBySeq(tx.db, seq)
  const test = await findTest(tx.db, seq)
  if (campaign?.status !== 'sending' || !campaign.abTest || !test) return false
  if (test.winner !== null) return true
  if (test.variants.some(({ pending }) => pending > 0)) return false
  if (campaign.isSandbox) {
    await changeTest(tx.db, seq, { sampled_at: now })
    const { best } = standing(campaign.abTest.metric, test.variants)
    return decide(tx, campaign, best, { by: 'rule', actor: SYSTEM }, now)
  }
  const { decideAfterMinutes } = campaign.abTest
  let { decideAt } = test
  if (test.sampledAt === null) {
    decideAt = decideAfterMinutes === null ? null : now + decideAfterMinutes * MINUTE_MS
    await changeTest(tx.db, seq, { sampled_at: now, decide_at: decideAt })
    if (decideAt === null) await askForWinner(tx, campaign, now)
  }
  if (decideAt === null || decideAt > now) {
    await changeCampaign(tx.db, seq, { nextAt: decideAt })
    return false
  }
  const winner = winnerByRule(campaign.abTest, test.variants)
  if (winner !== undefined) return decide(tx, campaign, winner, { by: 'rule', actor: SYSTEM }, now)
  // From now on as if it were decided by hand.
  await changeTest(tx.db, seq, { decide_at: null })
  await changeCampaign(tx.db, seq, { nextAt: null })
  await askForWinner(tx, campaign, now)
  return false
}

async function askForWinner(tx: Tx, campaign: Campaign, now: number): Promise<void> {
  await appendEvents(tx, [{ kind: 'campaign.winner_required', ...aboutCampaign(campaign, now) }])
}

/** @returns false if there is a winner already */
export async function decide(
  tx: Tx,
  campaign: Campaign,
  winner: number,
  { by, actor }: { readonly by: DecidedBy; readonly actor: Actor },
  now: number,
): Promise<boolean> {
  const { seq } = campaign
  if (!(await setWinner(tx.db, seq, winner, by, now))) return false
  const letter = await findVariantLetter(tx.db, seq, winner)
  if (letter === undefined) throw new Error(`variant ${winner} of campaign ${seq} has no stored content`)
  await insertLetter(tx.db, seq, JSON.parse(letter) as object)
  if (campaign.isArchived) await insertPage(tx.db, campaign, now)
  if (campaign.status === 'sending') await changeCampaign(tx.db, seq, { nextAt: now })
  await logAct(tx, campaign, actor, 'winner_chosen', now)
  return true
}

function isOver({ status }: Campaign): boolean {
  return status === 'cancelled' || status === 'failed'
}
