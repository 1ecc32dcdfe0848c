/** Converts `list_joined` and `email.opened` to type names: `ListJoined`, `EmailOpened`. Pure. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase())
}
