/** What a trigger lacks before its automation can be active. Fails: as the database does. */
import { findList } from '../../audience/lists/list-store.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import type { Automation } from './automation.js'

/** @returns completes "the trigger ..."; undefined where nothing is missing */
export async function findTriggerFault(
  db: Queries,
  { workspaceId, triggerType, triggerConfig }: Automation,
): Promise<string | undefined> {
  const named = (field: string) => {
    const value = triggerConfig[field]
    return typeof value === 'string' ? value.trim() : ''
  }
  switch (triggerType) {
    case 'list_joined':
    case 'list_left': {
      const id = named('listId')
      if (id === '') return 'has no listId'
      const list = isUuid(id) ? await findList(db, workspaceId, id) : undefined
      if (!list) return 'names a list that is not there'
      return list.type === 'static'
        ? undefined
        : 'names a dynamic list, which nobody joins: make a segment of its conditions'
    }
    case 'tag_added':
    case 'tag_removed':
      return named('tagName') === '' ? 'has no tagName' : undefined
    case 'segment_entered': {
      const id = named('segmentId')
      if (id === '') return 'has no segmentId'
      return isUuid(id) && (await findSegment(db, workspaceId, id))
        ? undefined
        : 'names a segment that is not there'
    }
    case 'date':
      return named('field') === '' ? 'has no field' : undefined
    default:
      return undefined
  }
}
