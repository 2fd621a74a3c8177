@echo off
rem The command in a clone, for Windows' shells: .\tacho runs list
setlocal
set "TACHO_NODE=%~dp0node_modules\.bin\node.exe"
if not exist "%TACHO_NODE%" set "TACHO_NODE=node"
set "TACHO_MAIN=%~dp0packages\cli\dist\main.js"
if not exist "%TACHO_MAIN%" set "TACHO_MAIN=%~dp0packages\cli\src\main.ts"
set "TACHO_FLAGS="
for %%c in (serve gateway record) do if "%~1"=="%%c" set "TACHO_FLAGS=--max-semi-space-size=8"
"%TACHO_NODE%" %TACHO_FLAGS% "%TACHO_MAIN%" %*
exit /b %ERRORLEVEL%
