<?xml version="1.0" encoding="UTF-8"?>
<!-- Broken links by the page that they stand on. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" encoding="UTF-8" indent="no" doctype-system="about:legacy-compat"/>
  <xsl:key name="by-source" match="broken/link" use="@source"/>
  <xsl:template match="/">
    <html lang="en">
      <head>
        <meta name="viewport" content="width=device-width, initial-scale=1"/>
        <title><xsl:text>Broken links of </xsl:text><xsl:value-of select="//broken/@site"/></title>
        <style>
          :root { color-scheme: light dark; }
          body { font: 1rem/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
          table { border-collapse: collapse; width: 100%; }
          th, td { text-align: left; padding: 0.2rem 0.6rem; border-bottom: 1px solid #8884; overflow-wrap: anywhere; }
        </style>
      </head>
      <body>
        <h1><xsl:text>Broken links of </xsl:text><xsl:value-of select="//broken/@site"/></h1>
        <p>
          <xsl:value-of select="count(//broken/link)"/><xsl:text> links, as of </xsl:text>
          <xsl:value-of select="//broken/@at"/><xsl:text>.</xsl:text>
        </p>
        <xsl:apply-templates select="//broken/link[generate-id() = generate-id(key('by-source', @source)[1])]"/>
      </body>
    </html>
  </xsl:template>
  <xsl:template match="link">
    <h2><a href="{@source}"><xsl:value-of select="@source"/></a></h2>
    <table>
      <thead><tr><th>Link</th><th>Text</th><th>Status</th><th>Since</th><th>Last good</th></tr></thead>
      <tbody>
        <xsl:for-each select="key('by-source', @source)">
          <tr>
            <td><a href="{@target}"><xsl:value-of select="@target"/></a></td>
            <td><xsl:value-of select="@text"/></td>
            <td>
              <xsl:choose>
                <xsl:when test="@status = 0">no answer</xsl:when>
                <xsl:otherwise><xsl:value-of select="@status"/></xsl:otherwise>
              </xsl:choose>
            </td>
            <td><xsl:value-of select="@since"/></td>
            <td><xsl:value-of select="@last_good"/></td>
          </tr>
        </xsl:for-each>
      </tbody>
    </table>
  </xsl:template>
</xsl:stylesheet>
