"""Writes the workbooks of this folder with openpyxl 3.1.5 and XlsxWriter 3.3.1:

    pip install openpyxl==3.1.5 XlsxWriter==3.3.1 && python make.py

The good ones have texts and, in the column of amounts, numbers. The damaged ones have what people do in a
spreadsheet.
"""
import datetime
import pathlib

import openpyxl
import xlsxwriter
from openpyxl.styles import numbers

HERE = pathlib.Path(__file__).parent
HEADERS = ["Référence", "Bénéficiaire", "Montant", "Devise", "Mode de paiement", "Téléphone", "RIB", "Motif"]
RIB = "30011000202151234567833"
ROWS = [
    ["S-0001", "Éléonore N’GOUABI", 150000, "XAF", "MOMO", "06 600 00 01", None, "Salaire 11/2026"],
    ["S-0002", "OKEMBA ALBERT", 15000000, "XAF", "VIREMENT", None, "30011 00020 21512345678 33", None],
    ["S-0003", "SITA & FILS", 98000.0, "XAF", "MOMO", "242066000002", None, None],
]


def damaged(i, row):
    """Row i with one damage each."""
    row = list(row)
    row[0] = "D-%04d" % i
    return row


def openpyxl_books():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(HEADERS)
    for row in ROWS:
        sheet.append(row)
    sheet.auto_filter.ref = "A1:H4"
    sheet.freeze_panes = "A2"
    for cell in sheet["C"]:
        cell.number_format = numbers.FORMAT_NUMBER_COMMA_SEPARATED1  # #,##0.00
    book.save(HERE / "openpyxl-good.xlsx")

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(HEADERS)
    for i in range(9):
        sheet.append(damaged(i, ROWS[0]))
    sheet["C2"] = "=150000"
    sheet["C3"] = datetime.date(2026, 11, 30)
    sheet["C4"] = 150000.5
    sheet["F5"] = 242066000001
    sheet["A6"] = 17
    sheet["C7"] = 1.5
    sheet["C7"].number_format = "0%"
    sheet.row_dimensions[8].hidden = True
    sheet.column_dimensions["H"].hidden = True
    sheet.merge_cells("D9:D10")
    book.create_sheet("Feuil2")["B7"] = "x"
    book.create_sheet("Feuil3").sheet_state = "hidden"
    book.save(HERE / "openpyxl-bad.xlsx")


def xlsxwriter_books():
    book = xlsxwriter.Workbook(HERE / "xlsxwriter-good.xlsx")
    sheet = book.add_worksheet("Paie")
    text, amount = book.add_format({"num_format": "@"}), book.add_format({"num_format": '#,##0\\ "FCFA"'})
    for column, header in enumerate(HEADERS):
        sheet.write(0, column, header, text)
    for i, row in enumerate(ROWS):
        for column, value in enumerate(row):
            sheet.write(i + 1, column, value, amount if column == 2 else text)
    book.close()

    book = xlsxwriter.Workbook(HERE / "xlsxwriter-bad.xlsx")
    sheet = book.add_worksheet("Paie")
    for column, header in enumerate(HEADERS):
        sheet.write(0, column, header)
    for i in range(6):
        for column, value in enumerate(damaged(i, ROWS[0])):
            sheet.write(i + 1, column, value)
    sheet.write_formula("B2", '="NGOMA"', None, "NGOMA")
    sheet.write_formula("C3", "=75000*2", None, 150000)
    sheet.write_boolean("E4", True)
    sheet.write_datetime("A5", datetime.datetime(2026, 11, 30), book.add_format({"num_format": "mmm-yy"}))
    sheet.write_rich_string("B6", "JEAN ", book.add_format({"bold": True}), "NGO\u200bMA")
    sheet.write_number("G7", 30011000202151234567833)
    sheet.set_row(6, None, None, {"hidden": True})
    sheet.set_column("H:H", 0)
    book.close()


openpyxl_books()
xlsxwriter_books()
