<?xml version="1.0" encoding="UTF-8"?>
<!-- Any result as plain text: one line an element, indented as it is nested. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text" encoding="UTF-8"/>
  <xsl:template match="/"><xsl:apply-templates select="*"/></xsl:template>
  <xsl:template match="*">
    <xsl:param name="indent" select="''"/>
    <xsl:value-of select="concat($indent, name())"/>
    <xsl:for-each select="@*[. != '']"><xsl:value-of select="concat('  ', name(), ': ', .)"/></xsl:for-each>
    <xsl:text>&#10;</xsl:text>
    <xsl:if test="not(*) and normalize-space()"><xsl:value-of select="."/><xsl:text>&#10;</xsl:text></xsl:if>
    <xsl:apply-templates select="*"><xsl:with-param name="indent" select="concat($indent, '  ')"/></xsl:apply-templates>
  </xsl:template>
</xsl:stylesheet>
