/** Font stacks that mail clients have, and the theme's defaults. */

export const FONTS = [
  ['Arial', 'Arial, Helvetica, sans-serif'],
  ['Georgia', "Georgia, 'Times New Roman', serif"],
  ['Helvetica', "'Helvetica Neue', Helvetica, Arial, sans-serif"],
  ['Palatino', "'Palatino Linotype', Palatino, serif"],
  ['Segoe / System', "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"],
  ['Tahoma', 'Tahoma, Geneva, sans-serif'],
  ['Times', "'Times New Roman', Times, serif"],
  ['Trebuchet', "'Trebuchet MS', Helvetica, sans-serif"],
  ['Verdana', 'Verdana, Geneva, sans-serif'],
  ['Courier', "'Courier New', Courier, monospace"],
] as const

export const STANDARD_FONT = FONTS[0][1]
