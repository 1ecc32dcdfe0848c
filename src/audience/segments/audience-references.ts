/** References to lists, tags and campaigns from segments, dynamic lists and forms. Fails: as the database does. */
import type { ReferenceHolder } from '../../resource/references.js'
import { findFormsOfList } from '../forms/form-store.js'
import { findDynamicLists, updateList } from '../lists/list-store.js'
import { namesInRules, renamedInRules } from './rule-references.js'
import { findAllSegments, updateSegment } from './segment-store.js'

/** Kinds that rules can reference. */
export const NAMED_IN_RULES: ReadonlySet<string> = new Set(['list', 'tag', 'campaign'])

export const segmentReferences: ReferenceHolder = {
  async findUses(db, thing) {
    if (!NAMED_IN_RULES.has(thing.kind)) return []
    const segments = await findAllSegments(db, thing.workspaceId)
    return segments
      .filter(({ conditions }) => namesInRules(conditions, thing))
      .map(({ id, name }) => ({ what: 'segment', id, name }))
  },
  async rename(db, thing, name) {
    for (const segment of await findAllSegments(db, thing.workspaceId)) {
      const conditions = renamedInRules(segment.conditions, thing, name)
      if (conditions) await updateSegment(db, { ...segment, conditions })
    }
  },
}

export const listReferences: ReferenceHolder = {
  async findUses(db, thing) {
    if (!NAMED_IN_RULES.has(thing.kind)) return []
    const lists = await findDynamicLists(db, thing.workspaceId)
    return lists
      .filter(({ conditions }) => conditions && namesInRules(conditions, thing))
      .map(({ id, name }) => ({ what: 'dynamic list', id, name }))
  },
  async rename(db, thing, name) {
    for (const list of await findDynamicLists(db, thing.workspaceId)) {
      const conditions = list.conditions && renamedInRules(list.conditions, thing, name)
      if (conditions) await updateList(db, { ...list, conditions })
    }
  },
}

export const formReferences: ReferenceHolder = {
  async findUses(db, { kind, workspaceId, id }) {
    if (kind !== 'list') return []
    return (await findFormsOfList(db, workspaceId, id)).map(form => ({
      what: 'form',
      id: form.id,
      name: form.name,
    }))
  },
}
