/** Values of contact attributes: their kinds, and how they are typed in. */

export const KINDS = ['text', 'number', 'truth', 'date', 'items', 'json'] as const
export type ValueKind = (typeof KINDS)[number]

const DAY = /^\d{4}-\d{2}-\d{2}$/

export function kindOf(value: unknown): ValueKind {
  if (typeof value === 'number') return 'number'
  if (typeof value === 'boolean') return 'truth'
  if (typeof value === 'string') return DAY.test(value) ? 'date' : 'text'
  const isPlainList = Array.isArray(value) && value.every(item => typeof item === 'string')
  return isPlainList ? 'items' : 'json'
}

/** The text to edit; lists have one item per line. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  return kindOf(value) === 'items' ? (value as string[]).join('\n') : JSON.stringify(value)
}

/** @returns undefined if the text is no value of the kind */
export function valueOf(text: string, kind: ValueKind): unknown {
  const trimmed = text.trim()
  switch (kind) {
    case 'text':
      return text
    case 'number':
      return trimmed !== '' && Number.isFinite(Number(trimmed)) ? Number(trimmed) : undefined
    case 'truth':
      return trimmed === 'true'
    case 'date':
      return DAY.test(trimmed) ? trimmed : undefined
    case 'items':
      return text
        .split('\n')
        .map(item => item.trim())
        .filter(Boolean)
    case 'json':
      try {
        return JSON.parse(trimmed) as unknown
      } catch {
        return undefined
      }
  }
}
