/** SQL for sealing plain-text webhook secrets once `secrets.key` is set. */
import { type SecretBox, isSealed } from '../../accounts/secret-box.js'
import type { Queries } from '../../db/database.js'

/** Runs in the transaction that seals all other secrets; skips sealed ones. */
export async function sealWebhookSecrets(db: Queries, box: SecretBox): Promise<void> {
  const rows = await db
    .selectFrom('webhook_subscriptions')
    .select(['id', 'secret', 'former_secret'])
    .where('deleted_at', 'is', null)
    .execute()
  for (const { id, secret, former_secret: former } of rows) {
    if (isSealed(secret) && (former === null || isSealed(former))) continue
    await db
      .updateTable('webhook_subscriptions')
      .set({
        secret: isSealed(secret) ? secret : box.seal(secret, secretPlace(id)),
        former_secret: former === null || isSealed(former) ? former : box.seal(former, formerPlace(id)),
      })
      .where('id', '=', id)
      .execute()
  }
}

export function secretPlace(id: string): string {
  return `webhook_subscriptions/secret/${id}`
}

export function formerPlace(id: string): string {
  return `webhook_subscriptions/former_secret/${id}`
}
