/* SPDX-License-Identifier: GPL-2.0 */
/* Grammar of the expression of --if: that of C, with the operators of C that are useful */
%define api.pure full
%define parse.error verbose
%locations
%parse-param { struct filter_parser *parser }
%parse-param { void *scanner }
%lex-param { void *scanner }

%code requires {
#include "filter_tree.h"
}

%union {
	struct node *word;
}

%{
#include "filter-bison.h"

int filter_yylex(YYSTYPE *yylval, YYLTYPE *yylloc, void *scanner);

static void filter_yyerror(YYLTYPE *yylloc, struct filter_parser *parser, void *scanner,
			 const char *message)
{
	(void)parser;
	(void)scanner;
	filter_die(yylloc->first_column, "%s", message);
}
%}

%token END 0 "end of the expression"
%token <word> OPERAND "value"
%token EQ "==" NE "!=" LE "<=" GE ">=" SHL "<<" SHR ">>" AND "&&" OR "||"
%type <word> expr

%left OR
%left AND
%left '|'
%left '^'
%left '&'
%left EQ NE
%left '<' '>' LE GE
%left SHL SHR
%left '+' '-'
%left '*' '/' '%'
%precedence UNARY

%%
start: expr			{ parser->root = $1; }
;

expr: OPERAND
| '(' expr ')'			{ $$ = $2; }
| '!' expr %prec UNARY		{ $$ = node_operator('!', @1.first_column, $2, NULL); }
| '~' expr %prec UNARY		{ $$ = node_operator('~', @1.first_column, $2, NULL); }
| '-' expr %prec UNARY		{ $$ = node_operator('-', @1.first_column, $2, NULL); }
| expr OR expr			{ $$ = node_operator(OR, @2.first_column, $1, $3); }
| expr AND expr			{ $$ = node_operator(AND, @2.first_column, $1, $3); }
| expr '|' expr			{ $$ = node_operator('|', @2.first_column, $1, $3); }
| expr '^' expr			{ $$ = node_operator('^', @2.first_column, $1, $3); }
| expr '&' expr			{ $$ = node_operator('&', @2.first_column, $1, $3); }
| expr EQ expr			{ $$ = node_operator(EQ, @2.first_column, $1, $3); }
| expr NE expr			{ $$ = node_operator(NE, @2.first_column, $1, $3); }
| expr '<' expr			{ $$ = node_operator('<', @2.first_column, $1, $3); }
| expr '>' expr			{ $$ = node_operator('>', @2.first_column, $1, $3); }
| expr LE expr			{ $$ = node_operator(LE, @2.first_column, $1, $3); }
| expr GE expr			{ $$ = node_operator(GE, @2.first_column, $1, $3); }
| expr SHL expr			{ $$ = node_operator(SHL, @2.first_column, $1, $3); }
| expr SHR expr			{ $$ = node_operator(SHR, @2.first_column, $1, $3); }
| expr '+' expr			{ $$ = node_operator('+', @2.first_column, $1, $3); }
| expr '-' expr			{ $$ = node_operator('-', @2.first_column, $1, $3); }
| expr '*' expr			{ $$ = node_operator('*', @2.first_column, $1, $3); }
| expr '/' expr			{ $$ = node_operator('/', @2.first_column, $1, $3); }
| expr '%' expr			{ $$ = node_operator('%', @2.first_column, $1, $3); }
;
