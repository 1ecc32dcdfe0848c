/** Columns of a table of rows. */

export interface Column {
  readonly key: string
  readonly label: string
  /** CSS width, e.g. `9rem`; the rest is shared. */
  readonly width?: string
  readonly align?: 'end'
  /** Left out on narrow screens. */
  readonly isWide?: boolean
  /** On narrow screens, beside the first column or beside the second; without it, beside both. */
  readonly narrow?: 'top' | 'bottom'
}
