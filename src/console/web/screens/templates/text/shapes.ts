/** Formats of text, by their names in the schema. */

export const FORMATS = ['strong', 'em', 'underline', 'strike'] as const
export type Format = (typeof FORMATS)[number]
export const SHAPES = ['paragraph', 'heading1', 'heading2', 'heading3'] as const
export type Shape = (typeof SHAPES)[number]
