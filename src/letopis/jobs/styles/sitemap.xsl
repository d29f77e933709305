<?xml version="1.0" encoding="UTF-8"?>
<!-- The pages of the maps of a result as sitemap.xml. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
                xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <xsl:output method="xml" encoding="UTF-8" indent="yes"/>
  <xsl:template match="/">
    <urlset><xsl:apply-templates select="//map//page[@time and @status &lt; 300]"/></urlset>
  </xsl:template>
  <xsl:template match="page">
    <url><loc><xsl:value-of select="@url"/></loc><lastmod><xsl:value-of select="@time"/></lastmod></url>
  </xsl:template>
</xsl:stylesheet>
