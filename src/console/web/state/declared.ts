/** Declared attributes of the workspace. */
import type { components } from '#api/rest'
import { answer, rest } from '../api/client'

export type Attribute = components['schemas']['Attribute']

export const ATTRIBUTE_TYPES: readonly Attribute['type'][] = ['text', 'number', 'date', 'boolean', 'list']

/** The API's limit per workspace. */
const MOST = 500

/** By name; empty if they cannot be read, since what shows them works without. */
export async function readDeclared(): Promise<ReadonlyMap<string, Attribute>> {
  try {
    const { data } = await answer(rest.GET('/attributes', { params: { query: { limit: MOST } } }))
    return new Map(data.map(one => [one.name, one]))
  } catch {
    return new Map()
  }
}
