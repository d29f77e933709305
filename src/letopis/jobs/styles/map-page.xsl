<?xml version="1.0" encoding="UTF-8"?>
<!-- The maps of a result as a page for visitors and webmasters. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" encoding="UTF-8" indent="no" doctype-system="about:legacy-compat"/>
  <xsl:template match="/">
    <html lang="en">
      <head>
        <meta name="viewport" content="width=device-width, initial-scale=1"/>
        <title><xsl:text>Map of </xsl:text><xsl:value-of select="//map/@site"/></title>
        <style>
          :root { color-scheme: light dark; }
          body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
          ul { padding-left: 1.2rem; }
          small { opacity: 0.7; }
          .error { color: #b00020; }
        </style>
      </head>
      <body>
        <xsl:apply-templates select="//map"/>
        <xsl:if test="not(//map)"><p>There is no map in this result.</p></xsl:if>
      </body>
    </html>
  </xsl:template>
  <xsl:template match="map">
    <h1><xsl:text>Map of </xsl:text><xsl:value-of select="@site"/></h1>
    <p>
      <xsl:value-of select="count(.//page)"/><xsl:text> pages, </xsl:text>
      <xsl:value-of select="sum(.//page/@images)"/><xsl:text> images, as of </xsl:text>
      <xsl:value-of select="@at"/><xsl:text>.</xsl:text>
    </p>
    <ul><xsl:apply-templates select="page"/></ul>
  </xsl:template>
  <xsl:template match="page">
    <li>
      <a href="{@url}">
        <xsl:choose>
          <xsl:when test="normalize-space(@title)"><xsl:value-of select="@title"/></xsl:when>
          <xsl:otherwise><xsl:value-of select="@url"/></xsl:otherwise>
        </xsl:choose>
      </a>
      <xsl:text> </xsl:text>
      <small>
        <xsl:if test="@lang != ''"><xsl:value-of select="@lang"/><xsl:text>, </xsl:text></xsl:if>
        <xsl:if test="@type != '' and @type != 'text/html'"><xsl:value-of select="@type"/><xsl:text>, </xsl:text></xsl:if>
        <xsl:value-of select="@bytes"/><xsl:text> bytes</xsl:text>
      </small>
      <xsl:if test="@status &gt;= 400">
        <xsl:text> </xsl:text><strong class="error"><xsl:value-of select="@status"/></strong>
      </xsl:if>
      <xsl:if test="page"><ul><xsl:apply-templates select="page"/></ul></xsl:if>
    </li>
  </xsl:template>
</xsl:stylesheet>
