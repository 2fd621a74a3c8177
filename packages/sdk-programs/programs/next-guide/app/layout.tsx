export default ({ children }: { children: React.ReactNode }) => (
  <html>
    <body>{children}</body>
  </html>
)
