mod dual;
