<?xml version="1.0" encoding="UTF-8"?>
<!-- What a mapdiff found, as an RSS 2.0 feed. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
                xmlns:date="http://exslt.org/dates-and-times" exclude-result-prefixes="date">
  <xsl:output method="xml" encoding="UTF-8" indent="yes"/>
  <xsl:template match="/">
    <rss version="2.0">
      <channel>
        <title><xsl:text>News of </xsl:text><xsl:value-of select="//mapdiff/@site"/></title>
        <link><xsl:text>http://</xsl:text><xsl:value-of select="//mapdiff/@site"/><xsl:text>/</xsl:text></link>
        <description>
          <xsl:text>What happened between </xsl:text><xsl:value-of select="//mapdiff/@from"/>
          <xsl:text> and </xsl:text><xsl:value-of select="//mapdiff/@to"/>
        </description>
        <generator>Letopis</generator>
        <xsl:apply-templates select="//mapdiff/event"/>
      </channel>
    </rss>
  </xsl:template>
  <xsl:template match="event">
    <item>
      <title>
        <xsl:value-of select="@event"/><xsl:text>: </xsl:text>
        <xsl:choose>
          <xsl:when test="normalize-space(@title)"><xsl:value-of select="@title"/></xsl:when>
          <xsl:otherwise><xsl:value-of select="@url"/></xsl:otherwise>
        </xsl:choose>
      </title>
      <link>
        <xsl:choose>
          <xsl:when test="@to"><xsl:value-of select="@to"/></xsl:when>
          <xsl:otherwise><xsl:value-of select="@url"/></xsl:otherwise>
        </xsl:choose>
      </link>
      <xsl:if test="@before or @to">
        <description>
          <xsl:if test="@before"><xsl:text>It was called: </xsl:text><xsl:value-of select="@before"/></xsl:if>
          <xsl:if test="@to"><xsl:text>It was at </xsl:text><xsl:value-of select="@url"/></xsl:if>
        </description>
      </xsl:if>
      <guid isPermaLink="false">
        <xsl:value-of select="concat(@event, ' ', @url, ' ', @to, ' ', @title, ' ', ../@from)"/>
      </guid>
      <pubDate>
        <xsl:call-template name="mail-date"><xsl:with-param name="time" select="../@to"/></xsl:call-template>
      </pubDate>
    </item>
  </xsl:template>
  <xsl:template name="mail-date">
    <xsl:param name="time"/>
    <xsl:variable name="day" select="substring($time, 1, 10)"/>
    <xsl:value-of select="concat(date:day-abbreviation($day), ', ', substring($day, 9, 2), ' ',
      date:month-abbreviation($day), ' ', substring($day, 1, 4), ' ', substring($time, 12, 8), ' +0000')"/>
  </xsl:template>
</xsl:stylesheet>
