import type { Generated } from 'kysely'
import type { Queries } from '../../db/database.js'
import { deleteOldest } from '../../db/retention.js'
import { flag, type Flag } from '../../db/tables.js'

interface ProductViewRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  contact_id: string
  product_id: string
  product: string
  is_sandbox: Flag
  viewed_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    product_views: ProductViewRow
  }
}

export interface ProductView {
  readonly id: string
  readonly workspaceId: string
  readonly contactId: string
  readonly productId: string
  /** Product details in the API's names. */
  readonly product: Readonly<Record<string, unknown>>
  readonly isSandbox: boolean
  readonly viewedAt: number
}

export async function insertProductView(db: Queries, view: ProductView): Promise<void> {
  await db
    .insertInto('product_views')
    .values({
      id: view.id,
      workspace_id: view.workspaceId,
      contact_id: view.contactId,
      product_id: view.productId,
      product: JSON.stringify(view.product),
      is_sandbox: flag(view.isSandbox),
      viewed_at: view.viewedAt,
    })
    .execute()
}

export function deleteProductViewsBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'product_views', key: 'seq', time: 'viewed_at' }, before, limit)
}
