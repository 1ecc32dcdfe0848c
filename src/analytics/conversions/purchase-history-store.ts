/**
 * SQL of segment rules on purchases, using the index of conversions by workspace and contact.
 *
 * A product matches if `metadata.product_id` or an item of `metadata.product_ids` equals it as text, case-sensitively.
 */
import { sql, type RawBuilder } from 'kysely'
import type { PurchaseHistory } from '../../audience/segments/rule-history.js'

function ofContact(workspaceId: string): RawBuilder<unknown> {
  return sql`conversions where conversions.workspace_id = ${workspaceId} and conversions.contact_id = contacts.id`
}

export const purchaseHistory: PurchaseHistory = {
  count: workspaceId => sql<number>`(select count(*) from ${ofContact(workspaceId)})`,
  total: workspaceId =>
    sql<number>`(select coalesce(sum(conversions.value), 0) from ${ofContact(workspaceId)})`,
  lastAt: workspaceId =>
    sql<number | null>`(select max(conversions.created_at) from ${ofContact(workspaceId)})`,
  hasBought(dialect, workspaceId, products) {
    const isAny = products === undefined
    const product =
      dialect === 'sqlite'
        ? sql`cast(json_extract(metadata, '$.product_id') as text)`
        : sql`(cast(metadata as json) ->> 'product_id')`
    // SQLite's `json_each` would return a scalar itself.
    const items =
      dialect === 'sqlite'
        ? sql`json_each(case json_type(metadata, '$.product_ids')
            when 'array' then json_extract(metadata, '$.product_ids') else '[]' end)`
        : sql`json_array_elements_text(case json_typeof(cast(metadata as json) -> 'product_ids')
            when 'array' then cast(metadata as json) -> 'product_ids' else '[]' end)`
    const item = dialect === 'sqlite' ? sql`${items} as item` : sql`${items} as item (value)`
    const isMeant = (value: RawBuilder<unknown>) =>
      isAny ? sql`${value} is not null` : sql`${value} in (${sql.join(products)})`
    const itemText = sql`cast(item.value as text)`
    return sql<boolean>`exists (select 1 from ${ofContact(workspaceId)}
      and (${isMeant(product)} or exists (select 1 from ${item} where ${isMeant(itemText)})))`
  },
}
