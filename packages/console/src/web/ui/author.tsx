interface Props {
  name: string
  importedAt: string | null
  className?: string
}

/** Who did something. What an import brought is the word of its file. */
export function Author({ name, importedAt, className }: Props) {
  return (
    <>
      <bdi className={className} title={name}>
        {name}
      </bdi>
      {importedAt !== null && ' (imported)'}
    </>
  )
}
