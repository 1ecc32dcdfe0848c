/** `list_joined` and `email.opened` as names of types: `ListJoined`, `EmailOpened`. Pure. */
export function pascalCase(name: string): string {
  return name.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase())
}
