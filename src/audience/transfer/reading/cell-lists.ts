/**
 * Lists of values in one cell: separated by commas or semicolons, a value containing either in double quotes; or a JSON array.
 *
 * Used for tags, lists and attributes that are lists. Pure; linear in the cell.
 */

/** Values as written, spaces and empty ones included. */
export function piecesOf(text: string): readonly string[] {
  if (!text.includes('"')) return text.split(/[,;]/)
  return [...text.matchAll(PIECE)].map(([piece, quoted]) => quoted?.replaceAll('""', '"') ?? piece)
}

/** A quoted value, or text up to the next separator; and the separator. */
const PIECE = /(?:\s*"((?:[^"]|"")*)"\s*|[^,;]*)(?:[,;]|$)/gy

/** @returns the distinct values of a cell; those of a JSON array keep their types */
export function listIn(cell: string): readonly unknown[] {
  return (
    jsonArray(cell) ?? [...new Set(piecesOf(cell).map(piece => piece.trim()))].filter(text => text !== '')
  )
}

function jsonArray(cell: string): readonly unknown[] | undefined {
  if (!cell.trimStart().startsWith('[')) return undefined
  try {
    const value: unknown = JSON.parse(cell)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
